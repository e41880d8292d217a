package fleet

import (
	"crypto/sha1" //nolint:gosec // what version 5 of RFC 9562 is made of; it guards nothing
	"fmt"
	"strings"
)

// ID derives a stable UUID from parts (version 5 of RFC 9562: SHA-1 of a namespace and a name), so
// that a repeated tick asks for the same thing under the same token.
func ID(parts ...string) string {
	h := sha1.New() //nolint:gosec // as above
	h.Write([]byte("sluice\x00"))
	h.Write([]byte(strings.Join(parts, "\x00")))
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
