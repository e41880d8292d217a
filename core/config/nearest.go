package config

import (
	"strings"

	edlib "github.com/hbollon/go-edlib"
)

// nearest is the word that was probably meant, empty where none is near.
func nearest(word string, words []string) string {
	if len(word) > 64 {
		return ""
	}
	best, least := shortened(word, words), 1+max(1, len(word)/3)
	if best != "" {
		return best
	}
	for _, w := range words {
		d := edlib.OSADamerauLevenshteinDistance(strings.ToLower(word), strings.ToLower(w))
		if d < least {
			best, least = w, d
		}
	}
	return best
}

// shortened is the shortest word that begins with what was written, such as the one with its unit.
func shortened(word string, words []string) string {
	best := ""
	for _, w := range words {
		if len(word) >= 4 && len(w) > len(word)+1 && strings.HasPrefix(w, word) && (best == "" || len(w) < len(best)) {
			best = w
		}
	}
	return best
}

// meant adds the nearest word to a message.
func (p Problem) meant(word string, words []string) Problem {
	p.Nearest = nearest(word, words)
	if p.Nearest != "" {
		p.Message += "; did you mean " + quote(p.Nearest) + "?"
	}
	return p
}
