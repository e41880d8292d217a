package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Headers of every message.
const (
	HeaderID        = "Idempotency-Key"  // the same each time a message is sent
	HeaderSignature = "Sluice-Signature" // where the channel has a secret
)

// Sign is the value of the signature's header: t=SECONDS,v1=HEX, the HMAC-SHA256 of SECONDS.BODY.
func Sign(key string, at time.Time, body []byte) string {
	t := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
