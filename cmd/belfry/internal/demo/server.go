package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// spread is the most that each server takes for a request, the spread of the demo that comes with tower: each
// answer takes a uniformly random part of it.
var spread = [...]time.Duration{
	1 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond,
	100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond,
	500 * time.Millisecond, 1000 * time.Millisecond,
}

// serverHeader tells in an answer which server gave it.
const serverHeader = "Demo-Server"

// A server is one endpoint: a real HTTP server on the loopback interface.
type server struct {
	number   int
	most     time.Duration
	seed     uint64
	inFlight atomic.Int64
	url      string
	http     *http.Server
}

// startServers starts one server for each latency of the spread.
func startServers(seed uint64) ([]*server, error) {
	var all []*server
	for i, most := range spread {
		s, err := startServer(i, most, seed)
		if err != nil {
			stopServers(all)
			return nil, fmt.Errorf("start the demo's servers: %w", err)
		}
		all = append(all, s)
	}
	return all, nil
}

func startServer(number int, most time.Duration, seed uint64) (*server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{number: number, most: most, seed: seed, url: "http://" + listener.Addr().String()}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = s.http.Serve(listener) }() // Should it end early, requests fail and are counted so.
	return s, nil
}

func stopServers(all []*server) {
	for _, s := range all {
		_ = s.http.Close()
	}
}

// ServeHTTP answers the request whose number is the path, after its latency here.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseUint(r.URL.Path[1:], 10, 64)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	timer := time.NewTimer(s.latency(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		w.Header().Set(serverHeader, strconv.Itoa(s.number))
		_, _ = io.WriteString(w, "ok\n")
	case <-r.Context().Done():
	}
}

// latency is how long request n takes here. It depends on nothing else, so that a policy cannot be lucky: whichever one
// sends request n to this server, it takes the same time.
func (s *server) latency(n uint64) time.Duration {
	var random rand.PCG
	random.Seed(s.seed, n*uint64(len(spread))+uint64(s.number))
	return time.Duration(float64(s.most) * rand.New(&random).Float64())
}
