package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/retry"
)

// A Server is a proxy that runs.
type Server struct {
	log      *slog.Logger
	opts     Options
	up       *upstream
	handler  *handler
	admin    http.Handler // nil: there is none
	listener net.Listener
	started  time.Time
	draining atomic.Bool
	events   *events
	cert     atomic.Pointer[tls.Certificate] // nil: in the clear

	onRequest []func(Record)
	onEvent   []func(balance.Event)
	onRetry   []func(retry.Event)
	onAdmit   []func(waited time.Duration)

	mu     sync.Mutex // guards what follows
	cfg    Config
	config ConfigState
}

// newServer makes what requests go through. Its parts have no goroutine before the upstream is made, so that a Config that is
// refused here leaves nothing behind.
func newServer(cfg Config, opts Options, log *slog.Logger) (*Server, error) {
	s := &Server{log: log, opts: opts, started: time.Now(), cfg: cfg, events: newEvents(log)}
	s.config = ConfigState{File: opts.File, Generation: 1, Since: s.started}
	s.setLevel(cfg)
	cert, err := readCertificate(cfg.TLS)
	if err != nil {
		return nil, err
	}
	s.cert.Store(cert)
	if opts.Admin != nil && cfg.Admin != "" {
		s.admin = opts.Admin(s) // now, lest it misses the first events
	}
	if s.up, err = newUpstream(cfg, hooks{s.events, s.tellEvent, s.tellRetry, s.tellAdmission}); err != nil {
		return nil, err
	}
	s.handler = newHandler(s.up, cfg, log, s.tellRequest)
	return s, nil
}

// Check reads the files that cfg names, and says what is wrong with them. cfg is valid.
func Check(cfg Config) (problems []*Problem) {
	_, err := readCertificate(cfg.TLS)
	_, other := readRecipe(cfg)
	for _, err := range []error{err, other} {
		if p, ok := errors.AsType[*Problem](err); ok {
			problems = append(problems, p)
		}
	}
	return problems
}

// readCertificate reads what clients are shown, nil if nothing.
func readCertificate(files ListenTLS) (*tls.Certificate, error) {
	if files.Cert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, &Problem{Key: "tls", Index: -1, Text: fmt.Sprintf("must be a certificate and its key in PEM, in %s and %s: %v", files.Cert, files.Key, err)}
	}
	return &cert, nil
}

// OnRequest has f called after each request, by its goroutine.
func (s *Server) OnRequest(f func(Record)) { s.onRequest = append(s.onRequest, f) }

// OnEvent has f called when an endpoint comes, goes, or changes its state, by several goroutines at once.
func (s *Server) OnEvent(f func(balance.Event)) { s.onEvent = append(s.onEvent, f) }

// OnRetry has f called when a request is going to be sent again.
func (s *Server) OnRetry(f func(retry.Event)) { s.onRetry = append(s.onRetry, f) }

// OnAdmit has f called when a request has got its place, with how long it waited for that in the buffer.
func (s *Server) OnAdmit(f func(waited time.Duration)) { s.onAdmit = append(s.onAdmit, f) }

func (s *Server) tellRequest(r Record) {
	for _, f := range s.onRequest {
		f(r)
	}
}

func (s *Server) tellAdmission(waited time.Duration) {
	for _, f := range s.onAdmit {
		f(waited)
	}
}

func (s *Server) tellRetry(e retry.Event) {
	s.events.retried(e)
	for _, f := range s.onRetry {
		f(e)
	}
}

func (s *Server) tellEvent(e balance.Event) {
	s.events.endpoint(e)
	for _, f := range s.onEvent {
		f(e)
	}
}

// Draining reports whether the signal to end has come.
func (s *Server) Draining() bool { return s.draining.Load() }

// State returns what there is to see. It costs a look at every endpoint.
func (s *Server) State() State {
	state := State{Address: s.listener.Addr().String(), Started: s.started, Draining: s.draining.Load(), Requests: s.handler.stats()}
	s.up.state(&state)
	state.Refusals = s.events.refusals()
	s.mu.Lock()
	defer s.mu.Unlock()
	state.Config = s.config
	return state
}

// Decisions returns the latest choices of a server, the oldest first; nil unless Config.Decisions says that they are kept.
func (s *Server) Decisions() []balance.Decision { return s.up.servers.Decisions() }

// reloads reloads as often as it is told to, one after the other. It has a goroutine of its own, for reading may take long, be it that a
// file is on a disk that does not answer, and the signal to end must not wait for that.
func (s *Server) reloads(told <-chan struct{}) {
	for range told {
		s.reload()
	}
}

// reload reads the configuration again and runs it, or says why not and goes on as before. It does nothing if the end has come meanwhile.
func (s *Server) reload() {
	err := s.replace()
	if s.draining.Load() {
		return
	}
	s.mu.Lock()
	if err != nil {
		s.config.Refused, s.config.RefusedAt = err, time.Now()
	} else {
		s.config.Generation++
		s.config.Since = time.Now()
		s.config.Refused = nil
	}
	generation := s.config.Generation
	s.mu.Unlock()
	if err != nil {
		s.log.Error("reload refused, the old configuration goes on", "file", s.opts.File, "error", err, "generation", generation)
		return
	}
	s.log.Info("reloaded", "file", s.opts.File, "generation", generation, "stack", s.up.String())
}

func (s *Server) replace() error {
	cfg, err := s.opts.Reload()
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	before := s.cfg
	s.mu.Unlock()
	if err := fixed(before, cfg); err != nil {
		return err
	}
	cert, err := readCertificate(cfg.TLS)
	if err != nil || s.draining.Load() {
		return err
	}
	if err := s.up.apply(cfg); err != nil {
		return err
	}
	s.cert.Store(cert)
	s.handler.set(cfg)
	s.setLevel(cfg)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
	return nil
}

func (s *Server) setLevel(cfg Config) {
	if s.opts.Level != nil {
		s.opts.Level.Set(logLevels[cfg.LogLevel])
	}
}

var errRestart = errors.New("cannot change while it runs; restart it for that")

// fixed says which values cannot be changed by a reload, if next does so.
func fixed(now, next Config) error {
	var errs []error
	for _, v := range []struct {
		key       string
		now, next any
	}{
		{"listen", now.Listen, next.Listen},
		{"admin", now.Admin, next.Admin},
		{"tls (on or off)", now.TLS.Cert != "", next.TLS.Cert != ""},
		{"load", now.Load, next.Load},
		{"probe_path", now.ProbePath, next.ProbePath},
		{"subset", now.Subset, next.Subset},
		{"eject", now.Eject, next.Eject},
		{"zone", now.Zone, next.Zone},
		{"sticky", now.Sticky, next.Sticky},
		{"per_address", now.PerAddress, next.PerAddress},
		{"rotate_every", now.RotateEvery, next.RotateEvery},
		{"cost_bytes", now.CostBytes, next.CostBytes},
		{"decisions", now.Decisions, next.Decisions},
		{"client.header_timeout", now.Client.HeaderTimeout, next.Client.HeaderTimeout},
		{"client.idle_timeout", now.Client.IdleTimeout, next.Client.IdleTimeout},
		{"client.header_bytes", now.Client.HeaderBytes, next.Client.HeaderBytes},
	} {
		if v.now != v.next {
			errs = append(errs, fmt.Errorf("%s %w: it is %v, the file says %v", v.key, errRestart, v.now, v.next))
		}
	}
	return errors.Join(errs...)
}

// httpServer returns the server that clients talk to: HTTP/1.1 and HTTP/2, which in the clear has to be begun by the client.
func (s *Server) httpServer(base context.Context) *http.Server {
	c := s.cfg.Client
	srv := &http.Server{
		BaseContext:       func(net.Listener) context.Context { return base },
		Handler:           s.handler,
		ReadHeaderTimeout: c.HeaderTimeout,
		IdleTimeout:       c.IdleTimeout,
		MaxHeaderBytes:    int(c.HeaderBytes),
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: c.StallTimeout},
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		Protocols:         new(http.Protocols),
	}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	if s.cert.Load() != nil {
		srv.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil },
		}
	}
	return srv
}

func (s *Server) serve(srv *http.Server) error {
	if srv.TLSConfig != nil {
		return srv.ServeTLS(s.listener, "", "")
	}
	return srv.Serve(s.listener)
}
