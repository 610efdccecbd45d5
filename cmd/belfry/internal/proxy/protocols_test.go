package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A pair is a certificate that is its own authority, and its key, in files.
type pair struct {
	cert, key string
	tls       tls.Certificate
}

func certificate(t *testing.T, host string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := pair{cert: filepath.Join(t.TempDir(), "cert.pem"), key: filepath.Join(t.TempDir(), "key.pem")}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for path, data := range map[string][]byte{p.cert: certPEM, p.key: keyPEM} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p.tls, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return p
}

// trust returns a client that speaks only the given protocol and trusts p.
func (p pair) trust(t *testing.T, protocol string) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(p.tls.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(leaf)
	return speak(t, protocol, &tls.Config{RootCAs: roots, ServerName: leaf.Subject.CommonName})
}

func speak(t *testing.T, protocol string, conf *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: conf, Protocols: new(http.Protocols), DisableCompression: true}
	switch protocol {
	case "http1":
		transport.Protocols.SetHTTP1(true)
	case "http2":
		transport.Protocols.SetHTTP2(true)
	case "h2c":
		transport.Protocols.SetUnencryptedHTTP2(true)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// speaking starts a server for one protocol.
func speaking(t *testing.T, protocol string, p pair, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Config.Protocols = new(http.Protocols)
	switch protocol {
	case "https1", "https2":
		s.Config.Protocols.SetHTTP1(true)
		s.Config.Protocols.SetHTTP2(protocol == "https2")
		s.EnableHTTP2 = protocol == "https2"
		s.TLS = &tls.Config{Certificates: []tls.Certificate{p.tls}}
		s.StartTLS()
	case "h2c":
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		s.URL = "h2c" + strings.TrimPrefix(s.URL, "http")
	default:
		s.Config.Protocols.SetHTTP1(true)
		s.Start()
	}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// TestProtocols passes a request and its answer through every pair of protocols: with bodies, trailers and what a server needs to know.
func TestProtocols(t *testing.T) {
	front, back := certificate(t, "front.example"), certificate(t, "back.example")
	for _, in := range []struct{ protocol, want string }{{"http1", "HTTP/1.1"}, {"h2c", "HTTP/2.0"}, {"tls http1", "HTTP/1.1"}, {"tls http2", "HTTP/2.0"}} {
		for _, out := range []struct{ protocol, want string }{{"http1", "HTTP/1.1"}, {"h2c", "HTTP/2.0"}, {"https1", "HTTP/1.1"}, {"https2", "HTTP/2.0"}} {
			t.Run(in.protocol+" to "+out.protocol, func(t *testing.T) {
				type arrived struct{ proto, host, forwarded, body string }
				seen := make(chan arrived, 1)
				target := speaking(t, out.protocol, back, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					seen <- arrived{r.Proto, r.Host, r.Header.Get("X-Forwarded-Proto"), string(body)}
					w.Header().Set("Trailer", "X-Sum")
					_, _ = io.WriteString(w, "hello")
					_ = http.NewResponseController(w).Flush()
					w.Header().Set("X-Sum", "42")
				})
				protocol, encrypted := strings.CutPrefix(in.protocol, "tls ")
				p := start(t, func(c *Config) {
					c.TargetTLS = TargetTLS{CA: back.cert, ServerName: "back.example"}
					if encrypted {
						c.TLS = ListenTLS{front.cert, front.key}
					}
				}, target)
				p.client = front.trust(t, protocol)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, http.MethodPut, p.url+"/x", strings.NewReader("body"))
				req.Host = "shop.example"
				res, err := p.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil || string(body) != "hello" || res.Proto != in.want || res.Trailer.Get("X-Sum") != "42" {
					t.Errorf("answered over %s with %q, %v, trailer %v", res.Proto, body, err, res.Trailer)
				}
				scheme := "http"
				if encrypted {
					scheme = "https"
				}
				if got, want := wait(t, "the request", seen), (arrived{out.want, "shop.example", scheme, "body"}); got != want {
					t.Errorf("arrived %+v, want %+v", got, want)
				}
			})
		}
	}
}

func TestAServerIsNotTrustedWithoutReason(t *testing.T) {
	back, other := certificate(t, "back.example"), certificate(t, "back.example")
	target := speaking(t, "https2", back, func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct {
		tls  TargetTLS
		want int
	}{
		"the right one":     {TargetTLS{back.cert, "back.example"}, 200},
		"another authority": {TargetTLS{other.cert, "back.example"}, 502},
		"another name":      {TargetTLS{back.cert, "other.example"}, 502},
		"the system's":      {TargetTLS{"", "back.example"}, 502},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(c2 *Config) { c2.TargetTLS = c.tls }, target)
			if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != c.want {
				t.Errorf("answered %s, want %d", res.Status, c.want)
			}
		})
	}
}

func TestAReloadShowsARenewedCertificate(t *testing.T) {
	first, second := certificate(t, "front.example"), certificate(t, "front.example")
	p := startReloadable(t, func(c *Config) { c.TLS = ListenTLS{first.cert, first.key} }, server(t, status(204)))
	for i, shown := range []pair{first, second} {
		if i > 0 {
			for from, to := range map[string]string{second.cert: first.cert, second.key: first.key} {
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
			}
			if state := p.reload(t, nil, nil); state.Refused != nil {
				t.Fatal(state.Refused)
			}
		}
		p.client = shown.trust(t, "http2")
		if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != 204 {
			t.Errorf("answered %s", res.Status)
		}
	}
}

func TestWebSocketThroughTLS(t *testing.T) {
	front, back := certificate(t, "front.example"), certificate(t, "back.example")
	// The server offers HTTP/2, in which there is no upgrade: the request has to go over HTTP/1.1 all the same.
	target := speaking(t, "https2", back, echo("websocket"))
	p := start(t, func(c *Config) {
		c.TLS, c.TargetTLS = ListenTLS{front.cert, front.key}, TargetTLS{back.cert, "back.example"}
	}, target)
	conn, err := tls.Dial("tcp", p.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answered %v, %v", res, err)
	}
	for _, text := range []string{"ping\n", strings.Repeat("x", 1<<16) + "\n"} {
		go func() { _, _ = io.WriteString(conn, text) }()
		if got, err := reader.ReadString('\n'); err != nil || got != text {
			t.Errorf("%d bytes came back as %d, %v", len(text), len(got), err)
		}
	}
	conn.Close()
	eventually(t, "the end of the upgrade", func() bool {
		s := p.server.State()
		return s.Requests.InFlight == 0 && s.Requests.Answered[1] == 1 && s.Limit.InFlight == 0 && s.Endpoints[0].Limit.InFlight == 0
	})
}

func TestAnUpgradeOverH2CIsRefused(t *testing.T) {
	p := start(t, nil, speaking(t, "h2c", pair{}, echo("websocket")))
	if _, _, res := p.upgrade(t); res.StatusCode < 400 {
		t.Errorf("answered %s", res.Status)
	}
}

// Events arrive one by one, over every protocol, also long after the timeout, and a client that leaves ends them.
func TestServerSentEvents(t *testing.T) {
	for _, protocol := range []string{"http1", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			events, ended := make(chan string), make(chan struct{})
			target := server(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				for {
					select {
					case event := <-events:
						fmt.Fprintf(w, "data: %s\n\n", event)
						_ = http.NewResponseController(w).Flush()
					case <-r.Context().Done():
						return
					}
				}
			})
			p := start(t, func(c *Config) { c.Timeout, c.Client.StallTimeout = 100*time.Millisecond, 50*time.Millisecond }, target)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
			res, err := speak(t, protocol, nil).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			lines := bufio.NewScanner(res.Body)
			for _, pause := range []time.Duration{0, 10 * time.Millisecond, 250 * time.Millisecond} {
				<-time.After(pause)
				events <- pause.String()
				if !lines.Scan() || lines.Text() != "data: "+pause.String() || !lines.Scan() {
					t.Fatalf("after %v: %q, %v", pause, lines.Text(), lines.Err())
				}
			}
			cancel()
			wait(t, "the end at the server", ended)
			eventually(t, "the end", func() bool { return p.server.State().Requests.InFlight == 0 })
			if s := p.server.State().Requests; s.ClientsGone != 1 || s.Failed != 0 {
				t.Errorf("counted %+v", s)
			}
		})
	}
}

// A download that is longer, and takes longer, than anything else is bounded by arrives whole.
func TestALongDownload(t *testing.T) {
	chunk := bytes.Repeat([]byte("belfry  "), 8<<10)
	const chunks = 512 // 32 MiB
	for _, protocol := range []string{"http1", "h2c"} {
		t.Run(protocol, func(t *testing.T) {
			target := server(t, func(w http.ResponseWriter, r *http.Request) {
				for i := range chunks {
					if i == chunks/2 {
						<-time.After(200 * time.Millisecond)
					}
					_, _ = w.Write(chunk)
				}
			})
			p := start(t, func(c *Config) { c.Timeout = 100 * time.Millisecond }, target)
			res, err := speak(t, protocol, nil).Get(p.url)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, want := sha256.New(), sha256.New()
			n, err := io.Copy(got, res.Body)
			for range chunks {
				want.Write(chunk)
			}
			if err != nil || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
				t.Errorf("%d bytes arrived, %v", n, err)
			}
		})
	}
}

// A drain tells HTTP/2 clients too, and lets what is in flight finish.
func TestDrainOverHTTP2(t *testing.T) {
	started, rest := make(chan struct{}), make(chan struct{})
	p := start(t, func(c *Config) { c.Drain = patience }, server(t, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-rest
		_, _ = io.WriteString(w, "done")
	}))
	free := sync.OnceFunc(func() { close(rest) })
	defer free()
	p.client = speak(t, "h2c", nil)
	answer := make(chan string, 1)
	go func() {
		_, body := p.fetch(t, http.MethodGet, "/", "")
		answer <- body
	}()
	wait(t, "the request", started)
	p.signals <- syscall.SIGTERM
	eventually(t, "draining", func() bool { return p.server.Draining() })
	free()
	if got := wait(t, "the answer", answer); got != "done" {
		t.Errorf("answered %q", got)
	}
	if code := wait(t, "the end", p.ended); code != ExitOK {
		t.Errorf("exit code %d", code)
	}
	if text := p.log.String(); !strings.Contains(text, "cut_off=0") {
		t.Errorf("the log says\n%s", text)
	}
}
