package bus_test

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }
