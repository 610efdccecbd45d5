// Command load sends requests for end-to-end tests, at a constant rate, whatever becomes of them.
//
//	load URL RATE PREFIX HOLD
//
// RATE is how many a second, PREFIX begins their ids, HOLD is for how many milliseconds longer than usual servers are to hold them. Of each
// request that is over it writes a line of JSON. It sends until standard input ends, and ends when all it has sent are over.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/e2e/record"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	rate, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	l := &load{
		url: args[0] + "/?hold=" + args[3], prefix: args[2], out: json.NewEncoder(stdout),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}, Timeout: time.Minute},
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		_, _ = io.Copy(io.Discard, stdin)
	}()
	l.run(time.Second/time.Duration(rate), stop)
	return l.err
}

type load struct {
	url, prefix string
	client      *http.Client

	mu  sync.Mutex
	out *json.Encoder
	err error
}

func (l *load) run(interval time.Duration, stop <-chan struct{}) {
	var open sync.WaitGroup
	defer open.Wait()
	began := time.Now()
	for n := 0; ; n++ {
		select {
		case <-time.After(time.Until(began.Add(time.Duration(n) * interval))):
		case <-stop:
			return
		}
		open.Go(func() { l.tell(l.send(n)) })
	}
}

func (l *load) tell(r record.Record) {
	r.Over = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.out.Encode(r); err != nil {
		l.err = err
	}
}

// Of ten requests five have no body, two have one and are idempotent, and three may be carried out once only.
func methodOf(n int) string {
	switch n % 10 {
	case 1, 4:
		return http.MethodPut
	case 2, 5, 8:
		return http.MethodPost
	}
	return http.MethodGet
}

func (l *load) send(n int) record.Record {
	r := record.Record{ID: l.prefix + strconv.Itoa(n), Method: methodOf(n), Sent: time.Now()}
	if err := l.ask(&r); err != nil {
		r.Error = err.Error()
	}
	return r
}

func (l *load) ask(r *record.Record) error {
	body := ""
	if r.Method != http.MethodGet {
		body = strings.Repeat(r.ID+" ", 200)
	}
	req, err := http.NewRequest(r.Method, l.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Id", r.ID)
	res, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	r.Status, r.Backend, r.Reason = res.StatusCode, res.Header.Get("X-Backend"), res.Header.Get("X-Belfry-Reason")
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.Broke = true
		return err
	}
	if want := r.Method + " " + r.ID + " " + body; res.StatusCode != http.StatusOK || string(text) != want {
		return fmt.Errorf("answered %s %.60q", res.Status, text)
	}
	return nil
}
