// Package webhook is how a receiver checks messages of Sluice.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// window is how old a message may be: an older one, however well signed, may be a repeat by somebody who listened.
const window = 5 * time.Minute

// Verify says whether a message was signed with our key, and lately. The signature is the header Sluice-Signature,
// body the bytes as they came, before any JSON is read.
func Verify(key []byte, signature string, body []byte, now time.Time) bool {
	parts := map[string]string{}
	for part := range strings.SplitSeq(signature, ",") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	seconds, err := strconv.ParseInt(parts["t"], 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > window {
		return false
	}
	got, err := hex.DecodeString(parts["v1"])
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(parts["t"] + "."))
	mac.Write(body)
	return hmac.Equal(got, mac.Sum(nil))
}
