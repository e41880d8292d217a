package config

import "math/big"

// convert multiplies a price by an exchange rate, exactly enough for millionths and never down.
func convert(p Price, rate Rate) Price {
	price, okPrice := new(big.Rat).SetString(string(p))
	factor, okRate := new(big.Rat).SetString(string(rate))
	if !okPrice || !okRate {
		return p
	}
	return Price(price.Mul(price, factor).FloatString(18)) // factors have nine decimals at most
}
