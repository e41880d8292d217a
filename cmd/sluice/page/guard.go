package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"strings"
)

const cookieName = "sluice_page"

// policy lets the page load what this server serves and nothing else; no script or style stands in the page itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets nobody in who should not be, before anything else is looked at.
type guard struct {
	token string
	local bool // served on loopback alone
	next  http.Handler
}

// ServeHTTP implements http.Handler.
func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case g.local && !loopback(hostOf(r.Host)):
		// A page of somebody else's, whose name was made to lead here.
		http.Error(w, "This page is served to this machine alone: open it as localhost or 127.0.0.1.", http.StatusMisdirectedRequest)
	case g.token == "":
		g.next.ServeHTTP(w, r)
	case r.Method == http.MethodGet && r.URL.Query().Has("token"):
		g.login(w, r)
	case g.known(r):
		g.next.ServeHTTP(w, r)
	default:
		refuse(w)
	}
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// login takes the token out of the address, where a history or a shoulder would see it.
func (g guard) login(w http.ResponseWriter, r *http.Request) {
	if !same(r.URL.Query().Get("token"), g.token) {
		refuse(w)
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // not Secure: the page itself speaks plain HTTP, on loopback or behind a proxy
		Name: cookieName, Value: g.pass(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (g guard) known(r *http.Request) bool {
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same(bearer, g.token)
	}
	c, err := r.Cookie(cookieName)
	return err == nil && same(c.Value, g.pass())
}

// pass stands for the token in the cookie, so that the token itself is kept nowhere.
func (g guard) pass() string {
	m := hmac.New(sha256.New, []byte(g.token))
	m.Write([]byte(cookieName))
	return hex.EncodeToString(m.Sum(nil))
}

// same compares in a time that tells nothing of either, their lengths included.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "This page wants the token that it was started with: open /?token=TOKEN once, or send it as Authorization: Bearer TOKEN.", http.StatusUnauthorized)
}
