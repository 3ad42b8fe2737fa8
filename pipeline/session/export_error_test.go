package session

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/export"
)

// The error for a policy that a format cannot hold names the policy, the reason and the remedy.
func TestExportError_HasPlaceReasonAndRemedy(t *testing.T) {
	for want, err := range map[string]error{
		`error[E049]: policy "main" cannot be exported as onnx: node "core": not supported by this backend
  help: nothing has been written: take another format than onnx`: fmt.Errorf("node \"core\": %w", policy.ErrUnsupported),
		`error[E049]: policy "main" cannot be exported as onnx: the file does not compute what the host does
  help: nothing has been written: take another format than onnx; it is a mistake of this program, so keep the checkpoint and report it`: export.ErrDiffers,
	} {
		got := exportError("main", export.ONNX, err)
		if got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
