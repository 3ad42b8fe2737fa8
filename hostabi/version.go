package hostabi

import "strconv"

// Version is a major and a minor number. A different major does not work together; a higher minor only adds.
type Version struct {
	Major, Minor uint16
}

// EnvABI is the version of the environment ABI that this host speaks. The major number is also in the name of
// the marker export (ExportABI), so that it can be read without running the guest.
var EnvABI = Version{Major: 1, Minor: 1}

// Release is the version of the program and of everything installed with it, such as the package for Python.
const Release = "0.1.0-dev"

// String returns the version as major.minor.
func (v Version) String() string {
	return strconv.Itoa(int(v.Major)) + "." + strconv.Itoa(int(v.Minor))
}
