// Command backend is a server for end-to-end tests, which behaves badly when it is told to.
//
//	backend ADDR LOG
//
// It listens on ADDR, writes the X-Id of each request to the file LOG before anything else is done with it, and says "ready" on
// standard output. Each line on standard input is how it is to behave from then on, a word of the constants below, and is repeated on
// standard output when it does. SIGTERM ends it as servers should end: what is in flight is answered.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// How a server may behave.
const (
	well        = "well"
	slow        = "slow"        // it takes 20 times as long
	unavailable = "unavailable" // 503
	reset       = "reset"       // half of the answer, then a reset
	mute        = "mute"        // it takes requests and never answers them, not even when it is well again
)

// usual is how long an answer takes.
const usual = 15 * time.Millisecond

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "backend:", err)
		os.Exit(1)
	}
}

func run(addr, path string) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	b := &backend{log: log, name: addr}
	b.mood.Store(well)
	srv := &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	go b.listen()
	fmt.Println("ready") //nolint:forbidigo // this is what whoever started it reads
	select {
	case err := <-served:
		return err
	case <-term.Done():
		return srv.Shutdown(context.Background())
	}
}

// A backend answers with who it is and what it was sent.
type backend struct {
	log  *os.File
	name string
	mood atomic.Value // a string
}

// listen does as it is told. Whoever tells has died when there is nothing more to read.
func (b *backend) listen() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		b.mood.Store(lines.Text())
		fmt.Println(lines.Text()) //nolint:forbidigo // as above
	}
	os.Exit(0)
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Id")
	if _, err := b.log.WriteString(id + "\n"); err != nil {
		panic(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Backend", b.name)
	switch b.mood.Load() {
	case slow:
		b.answer(w, r, id, body, 20*usual)
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
	case reset:
		breakOff(w)
	case mute:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	default:
		hold, _ := strconv.Atoi(r.URL.Query().Get("hold")) // 0 if it does not say
		b.answer(w, r, id, body, usual+time.Duration(hold)*time.Millisecond)
	}
}

func (b *backend) answer(w http.ResponseWriter, r *http.Request, id string, body []byte, after time.Duration) {
	select {
	case <-time.After(after):
	case <-r.Context().Done():
		return
	}
	fmt.Fprintf(w, "%s %s %s", r.Method, id, body)
}

// breakOff sends half of an answer, and resets the connection when that has had time to arrive.
func breakOff(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "20000")
	control := http.NewResponseController(w)
	_, _ = w.Write(make([]byte, 10000))
	_ = control.Flush()
	<-time.After(20 * time.Millisecond)
	conn, _, err := control.Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
