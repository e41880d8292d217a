// Package explain turns plans into words, log lines and alerts; every sentence that Sluice says about a decision is written here.
package explain
