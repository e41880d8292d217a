// Package demo is the local run: a burst of thumbnails on a stack of its own, worked off by workers that Sluice starts and stops.
package demo
