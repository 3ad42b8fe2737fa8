package trace

import (
	"fmt"
	"net/url"
	"strings"
)

// IsAddress reports whether traces go to a server by HTTP, and not to a file. The error says what is wrong with an address.
func IsAddress(to string) (bool, error) {
	if !strings.Contains(to, "://") {
		return false, nil
	}
	u, err := url.Parse(to)
	switch {
	case err != nil:
		return true, err
	case u.Scheme != "http" && u.Scheme != "https":
		return true, fmt.Errorf("%q is no address of http or https", to)
	case u.Host == "":
		return true, fmt.Errorf("%q names no host", to)
	}
	return true, nil
}
