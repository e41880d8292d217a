// Package webhook sends alerts to an address over HTTP: signed JSON for programs, messages for Slack, notifications for a console.
package webhook
