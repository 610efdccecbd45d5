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

// What a client may take its time for. A request as such has no limit here: uploads and streams last as long as they last.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// Run listens and serves until SIGINT or SIGTERM, then lets what is in flight finish, and returns the exit code. A second signal ends it at
// once. The Config must be valid.
func Run(cfg Config, log *slog.Logger) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	code, err := run(cfg, log, signals)
	if err != nil {
		log.Error("belfry proxy ends", "error", err)
	}
	return code
}

func run(cfg Config, log *slog.Logger, signals <-chan os.Signal) (int, error) {
	listener, err := listen(cfg)
	if err != nil {
		return ExitFailed, err
	}
	up, err := newUpstream(cfg)
	if err != nil {
		listener.Close()
		return ExitFailed, err
	}
	defer up.Close()
	h := newHandler(up.transport, log)
	// Ends upgraded connections that outlast the drain: they are no longer the server's.
	base, cut := context.WithCancel(context.Background())
	defer cut()
	srv := &http.Server{
		BaseContext:       func(net.Listener) context.Context { return base },
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	log.Info("belfry proxy listens", "address", listener.Addr().String(), "targets", strings.Join(up.targets, ","), "stack", up.String())
	select {
	case err := <-served:
		return ExitFailed, fmt.Errorf("accept connections: %w", err)
	case sig := <-signals:
		return drain(srv, h, cfg.Drain, log, sig, signals), nil
	}
}

// drain lets what is in flight finish, for at most the given time or until the next signal, and returns the exit code.
func drain(srv *http.Server, h *handler, patience time.Duration, log *slog.Logger, sig os.Signal, signals <-chan os.Signal) int {
	log.Info("belfry proxy drains", "signal", sig.String(), "in_flight", h.inFlight.Load(), "at_most", patience)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	drained := make(chan bool, 1)
	go func() { drained <- srv.Shutdown(ctx) == nil && h.idle(ctx) }()
	code, cut := ExitOK, int64(0)
	select {
	case ok := <-drained:
		if !ok {
			cut = h.inFlight.Load()
		}
	case again := <-signals:
		cut = h.inFlight.Load()
		code = exitCode(again)
	}
	srv.Close()
	failed, gone := h.failed.counts()
	log.Info("belfry proxy ends", "requests", h.requests.Load(), "failed", failed, "clients_gone", gone, "cut_off", cut)
	return code
}

// exitCode is how shells call the end by a signal.
func exitCode(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ExitFailed
}

// listen opens the address, and says in the user's words why that is not possible.
func listen(cfg Config) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", cfg.Listen)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--listen %s: another program listens there", cfg.Listen)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--listen %s: not permitted; ports below 1024 often need a privilege", cfg.Listen)
	}
	return nil, fmt.Errorf("--listen %s: %w", cfg.Listen, err)
}
