package admin

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
)

// page is one file with its style and its script, which asks nobody but this server. The numbers that it begins with are put into
// it, so that it shows them at once.
//
//go:embed page.html
var page []byte

// seed is what is replaced by an opening. A script of this type is data: browsers do not run it, whatever is in it.
var seed = []byte(`<script type="application/json" id="opening">null</script>`)

// policy allows that style and that script, and to talk to this server. Nothing else loads, runs, or frames it.
var policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src " + hashOf(page, "style") + "; script-src " + hashOf(page, "script") +
	"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// hashOf returns the source expression for the content of the page's one element of a name without attributes.
func hashOf(page []byte, name string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+name+">"))
	content, _, _ := bytes.Cut(rest, []byte("</"+name+">"))
	sum := sha256.Sum256(content)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (a *Admin) servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	before, after, _ := bytes.Cut(page, seed)
	middle := bytes.Replace(seed, []byte("null"), encode(a.opening()), 1)
	_, _ = w.Write(bytes.Join([][]byte{before, middle, after}, nil))
}
