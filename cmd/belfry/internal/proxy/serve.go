package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit codes of Run; the second signal exits with 128 and its number.
const (
	ExitOK     = 0
	ExitFailed = 1
)

// Run listens and serves until SIGINT or SIGTERM, then lets what is in flight finish, and returns the exit code. A second signal ends it at
// once. SIGHUP reloads, or ends it too if there is nothing to reload. The Config must be valid.
func Run(cfg Config, opts Options, log *slog.Logger) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	code, err := run(cfg, opts, log, signals)
	if err != nil {
		log.Error("belfry proxy ends", "error", err)
	}
	return code
}

func run(cfg Config, opts Options, log *slog.Logger, signals <-chan os.Signal) (int, error) {
	listener, err := listen("--listen", cfg.Listen)
	if err != nil {
		return ExitFailed, err
	}
	defer listener.Close()
	s, err := newServer(cfg, opts, log)
	if err != nil {
		return ExitFailed, err
	}
	defer s.up.Close()
	s.listener = listener
	if opts.Running != nil {
		opts.Running()
	}
	admin, err := s.serveAdmin()
	if err != nil {
		return ExitFailed, err
	}
	defer admin.Close()
	// Ends upgraded connections that outlast the drain: they are no longer the server's.
	base, cut := context.WithCancel(context.Background())
	defer cut()
	srv := s.httpServer(base)
	served := make(chan error, 1)
	go func() { served <- s.serve(srv) }()
	targets, _ := ParseTargets(cfg.Targets)
	log.Info("belfry proxy listens", "address", listener.Addr().String(), "admin", admin.Addr, "targets", strings.Join(targets, ","), "stack", s.up.String())
	reloads := make(chan struct{}, 1)
	defer close(reloads)
	go s.reloads(reloads)
	for {
		select {
		case err := <-served:
			return ExitFailed, fmt.Errorf("accept connections: %w", err)
		case sig := <-signals:
			if sig == syscall.SIGHUP && opts.Reload != nil {
				select {
				case reloads <- struct{}{}:
				default: // one is about to begin, and will read what this one would
				}
				continue
			}
			return s.drain(srv, sig, signals), nil
		}
	}
}

// serveAdmin serves what Options.Admin makes, until the returned server is closed.
func (s *Server) serveAdmin() (*http.Server, error) {
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
	if s.admin == nil {
		return srv, nil
	}
	listener, err := listen("--admin", s.cfg.Admin)
	if err != nil {
		return nil, err
	}
	srv.Addr, srv.Handler = listener.Addr().String(), s.admin
	go func() { _ = srv.Serve(listener) }() // ends by Close
	return srv, nil
}

// drain lets what is in flight finish, for at most the configured time or until the next signal, and returns the exit code.
func (s *Server) drain(srv *http.Server, sig os.Signal, signals <-chan os.Signal) int {
	s.draining.Store(true)
	s.mu.Lock()
	delay, patience := s.cfg.DrainDelay, s.cfg.Drain
	s.mu.Unlock()
	s.log.Info("belfry proxy drains", "signal", sig.String(), "in_flight", s.handler.inFlight.Load(), "after", delay, "at_most", patience)
	_, again := await(time.After(delay), signals)
	code, cut := ExitOK, int64(0)
	if again == nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		drained := make(chan bool, 1)
		go func() { drained <- srv.Shutdown(ctx) == nil && s.handler.idle(ctx) }()
		var ok bool
		if ok, again = await(drained, signals); !ok {
			cut = s.handler.inFlight.Load()
		}
	}
	if again != nil {
		code, cut = exitCode(again), s.handler.inFlight.Load()
	}
	srv.Close()
	failed, gone := s.handler.failed.counts()
	s.log.Info("belfry proxy ends", "requests", s.handler.requests.Load(), "failed", failed, "clients_gone", gone, "cut_off", cut)
	return code
}

// await waits for what is to come, or for the signal that does not wait for it.
func await[T any](what <-chan T, signals <-chan os.Signal) (T, os.Signal) {
	for {
		select {
		case v := <-what:
			return v, nil
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				var none T
				return none, sig
			}
		}
	}
}

// exitCode is how shells call the end by a signal.
func exitCode(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ExitFailed
}

// listen opens an address, and says in the user's words why that is not possible.
func listen(flag, addr string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s %s: another program listens there", flag, addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s %s: not permitted; ports below 1024 often need a privilege", flag, addr)
	}
	return nil, fmt.Errorf("%s %s: %w", flag, addr, err)
}
