package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestExplainAsksTheAdminAddress(t *testing.T) {
	state := `{"window_seconds": 10, "endpoints": [{"key": "http://a:80", "condition": "ready", "weight": 1}]}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/state":
			_, _ = w.Write([]byte(state))
		case "/api/decisions":
			_, _ = w.Write([]byte(`{"kept": false, "decisions": []}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	addr := s.Listener.Addr().String()
	code, stdout, stderr := run("explain", "a:80", "--admin", addr)
	if code != 0 || stderr != "" || !strings.Contains(stdout, "http://a:80 is ready. Nothing was sent to anybody in the last 10 s") || !strings.Contains(stdout, "decisions: 1000") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	for _, c := range []struct {
		args  []string
		state string
		want  string
	}{
		{[]string{"http://b:80"}, state, `endpoint "http://b:80" is not known; there are http://a:80`},
		{[]string{"b:80"}, `{}`, "there is none"},
		{[]string{"a:80"}, "<html>", "is not what a belfry proxy answers"},
	} {
		state = c.state
		if code, stdout, stderr := run(append([]string{"explain", "--admin", addr}, c.args...)...); code != 1 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
	s.Close()
	if code, _, stderr := run("explain", "a:80", "--admin", addr); code != 1 || !strings.Contains(stderr, "no proxy shows itself at --admin "+addr) {
		t.Errorf("nobody there: exit code %d, stderr %q", code, stderr)
	}
}
