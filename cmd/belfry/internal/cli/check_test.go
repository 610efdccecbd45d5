package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const example = "../../belfry.example.yaml"

// certified writes a certificate and its key, and returns their paths.
func certified(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"a"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

func TestCheckTheExample(t *testing.T) {
	if code, stdout, stderr := run("check", example); code != 0 || stdout != example+" is fine\n" || stderr != "" {
		t.Errorf("as it is: exit code %d, %q, %q", code, stdout, stderr)
	}
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`(?m)^#( *(tls|cert|key|ca):)`).ReplaceAllString(string(data), "$1")
	path := filepath.Join(t.TempDir(), "belfry.yaml")
	check := func(text string) (code int, stdout, stderr string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return run("check", path)
	}
	code, _, stderr := check(used)
	if code != ExitUsage || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, ": tls must be") || !strings.Contains(stderr, ": target_tls.ca must be") {
		t.Errorf("in use, without its files: exit code %d, %q", code, stderr)
	}
	cert, key := certified(t)
	there := strings.NewReplacer("/etc/belfry/tls.crt", cert, "/etc/belfry/tls.key", key, "/etc/belfry/ca.pem", cert).Replace(used)
	if code, stdout, stderr := check(there); code != 0 || stdout != path+" is fine\n" {
		t.Errorf("in use, with its files: exit code %d, %q, %q", code, stdout, stderr)
	}
}
