// Package sim is a whole world in memory: every port, the machines and agents behind them, and a fault wherever one is wanted.
package sim
