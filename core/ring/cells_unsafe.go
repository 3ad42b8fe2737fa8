package ring

import (
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

// messagesAt returns the n cells of a ring of messages. The slice expression is what keeps them inside of mem.
func messagesAt(mem []byte, n int) []hostabi.Message {
	body := mem[hostabi.RingHeaderBytes : hostabi.RingHeaderBytes+n*hostabi.MessageBytes]
	return unsafe.Slice((*hostabi.Message)(unsafe.Pointer(&body[0])), n)
}
