package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/files"
)

const manifestFile = "manifest.json"

// ErrCorrupt is wrapped if a checkpoint's file has changed since it was written. The message names the file.
var ErrCorrupt = errors.New("damaged")

// manifest is the content of manifest.json: a checkpoint's values and its other files.
type manifest struct {
	Format        int                       `json:"format"`
	Rlhost        string                    `json:"rlhost"`
	Run           string                    `json:"run"`      // ID of the run that saved it
	Sequence      uint64                    `json:"sequence"` // counts the saves of a run
	PolicyVersion uint64                    `json:"policy_version"`
	EnvSteps      uint64                    `json:"env_steps"`
	Change        uint64                    `json:"change,omitempty"` // newest change that had been made
	MeanReturn    *float64                  `json:"mean_return"`      // null while the window is not full
	Exact         bool                      `json:"exact"`
	WhyNotExact   string                    `json:"why_not_exact,omitempty"`
	Components    map[string]componentEntry `json:"components"`
	Files         map[string]fileEntry      `json:"files"`
}

// componentEntry says where a component's state lies.
type componentEntry struct {
	Meta    json.RawMessage   `json:"meta"`
	Tensors string            `json:"tensors,omitempty"` // safetensors file
	Blobs   map[string]string `json:"blobs,omitempty"`   // file by blob
}

type fileEntry struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// The manifest ends with its own hash: of all bytes before sealHead.
const (
	sealHead = ",\n  \"manifest_sha256\": \""
	sealTail = "\"\n}\n"
	sealLen  = len(sealHead) + 2*sha256.Size + len(sealTail)
)

func (m *manifest) encode() ([]byte, error) {
	b, err := encodeJSON(m)
	if err != nil {
		return nil, err
	}
	body := b[:len(b)-len("\n}\n")]
	return append(body, sealHead+hexHash(body)+sealTail...), nil
}

func hexHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// readManifest reads and checks the manifest of a checkpoint's folder.
func readManifest(dir string) (*manifest, error) {
	path := filepath.Join(dir, manifestFile)
	b, err := files.Read(path, maxDocument)
	if err != nil {
		return nil, err
	}
	// First the format: another one may be sealed differently.
	if err := checkFormat(path, b); err != nil {
		if json.Valid(b) {
			return nil, err
		}
		return nil, fmt.Errorf("%s is %w: it is not JSON", path, ErrCorrupt)
	}
	if len(b) < sealLen || string(b[len(b)-sealLen:]) != sealHead+hexHash(b[:len(b)-sealLen])+sealTail {
		return nil, fmt.Errorf("%s is %w: its hash does not match", path, ErrCorrupt)
	}
	m := new(manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%s is %w: %w", path, ErrCorrupt, err)
	}
	return m, nil
}

// fileName makes the name of a component, or with dots of a blob, fit for a file name, a different one for each.
func fileName(name string, dots bool) (string, error) {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_-[]", c) >= 0,
			c == '.' && dots:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() == 0 || b.Len() > 100 {
		return "", fmt.Errorf("the name %q cannot be part of a file name: want 1 to 100 bytes", name)
	}
	return b.String(), nil
}

// folderName is the name of a checkpoint's folder: the policy version and, where one version is saved again, a
// count.
func folderName(version, again uint64) string {
	if again < 2 {
		return fmt.Sprintf("%08d", version)
	}
	return fmt.Sprintf("%08d-%d", version, again)
}

// parseFolder is the inverse of folderName.
func parseFolder(name string) (version, again uint64, ok bool) {
	v, a, repeated := strings.Cut(name, "-")
	version, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	again = 1
	if repeated {
		if again, err = strconv.ParseUint(a, 10, 64); err != nil {
			return 0, 0, false
		}
	}
	return version, again, folderName(version, again) == name
}
