package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/admin"
)

// Ask asks the proxy whose admin address is addr, as host:port, for its state and its latest decisions. It takes no longer than 10 s.
func Ask(ctx context.Context, addr string) (s admin.Snapshot, d admin.Decisions, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := get(ctx, addr, "/api/state", &s); err != nil {
		return s, d, err
	}
	return s, d, get(ctx, addr, "/api/decisions", &d)
}

// most is how long an answer may be: 100000 decisions are a fifth of that.
const most = 256 << 20

func get(ctx context.Context, addr, path string, to any) error {
	addr = strings.TrimSuffix(strings.TrimPrefix(addr, "http://"), "/")
	if host, port, err := net.SplitHostPort(addr); err == nil && host == "" {
		addr = net.JoinHostPort("localhost", port)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return err
	}
	// No proxy of the environment: what is asked is one.
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return fmt.Errorf("no proxy shows itself at --admin %s: %w", addr, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("http://%s%s answers %s: is that the admin address of a belfry proxy?", addr, path, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, most)).Decode(to); err != nil {
		return fmt.Errorf("http://%s%s is not what a belfry proxy answers: %w", addr, path, err)
	}
	return nil
}
