package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	testService = "test.Service"
	testMax     = 8 << 20
	frame       = 16 << 10 // bytes, at most
)

// clientPreface begins a connection of HTTP/2; RFC 9113, section 3.4.
const clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// calls answers the calls of the tests' server.
func calls(ctx context.Context, method string, request []byte) ([]byte, error) {
	switch method {
	case "Echo":
		return request, nil
	case "Refuse":
		return nil, &Error{Code: 9, Message: string(request)}
	case "Fail":
		return nil, errors.New("100 % wrong:\nkaputt, größer")
	case "Wait":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return nil, &Error{Code: codeUnimplemented, Message: "unknown method " + method}
}

// started starts a server and returns the path of its socket, and the result of Serve.
func started(t testing.TB, call func(context.Context, string, []byte) ([]byte, error)) (socket string, over <-chan error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rpc")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen(Config{Dir: dir, Service: testService, MaxCall: testMax, Call: call})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return strings.Split(s.Line(7), "|")[3], ended
}

// connected returns gRPC's own client.
func connected(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.Dial("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func invoke(ctx context.Context, c *grpc.ClientConn, method string, request []byte) ([]byte, error) {
	reply := new(wrapperspb.BytesValue)
	err := c.Invoke(ctx, "/"+testService+"/"+method, wrapperspb.Bytes(request), reply)
	return reply.GetValue(), err
}

func TestServer_AnswersCallsOfEverySize(t *testing.T) {
	socket, _ := started(t, calls)
	c := connected(t, socket)
	for _, n := range []int{0, 1, 127, 128, frame - 8, frame, frame + 1, 65535, 1 << 20, testMax - 5} {
		request := bytes.Repeat([]byte{byte(n), 1, 2}, n/3+1)[:n]
		reply, err := invoke(t.Context(), c, "Echo", request)
		if err != nil || !bytes.Equal(reply, request) {
			t.Errorf("%d bytes: got %d, %v", n, len(reply), err)
		}
	}
}

func TestServer_RefusesARequestThatIsTooLongAndContinues(t *testing.T) {
	socket, _ := started(t, calls)
	c := connected(t, socket)
	if _, err := invoke(t.Context(), c, "Echo", make([]byte, 2*testMax)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v, want %v", err, codes.ResourceExhausted)
	}
	if _, err := invoke(t.Context(), c, "Echo", []byte("x")); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestServer_TellsErrorsInTheirOwnWords(t *testing.T) {
	socket, _ := started(t, calls)
	c := connected(t, socket)
	long := strings.Repeat("ü%", 20<<10) // more than fits into a frame
	for _, test := range []struct {
		method, request, want string
		code                  codes.Code
	}{
		{"Refuse", "not now", "not now", codes.FailedPrecondition},
		{"Refuse", "", "", codes.FailedPrecondition},
		{"Refuse", long, long, codes.FailedPrecondition},
		{"Fail", "", "100 % wrong:\nkaputt, größer", codes.Unknown},
		{"None", "", "unknown method None", codes.Unimplemented},
	} {
		_, err := invoke(t.Context(), c, test.method, []byte(test.request))
		if got := status.Convert(err); got.Code() != test.code || got.Message() != test.want {
			t.Errorf("%s: got %v %.60q, want %v %.60q", test.method, got.Code(), got.Message(), test.code, test.want)
		}
	}
	err := c.Invoke(t.Context(), "/other.Service/Echo", wrapperspb.Bytes(nil), new(wrapperspb.BytesValue))
	if got := status.Convert(err); got.Code() != codes.Unimplemented || got.Message() != "unknown method /other.Service/Echo" {
		t.Errorf("another service: got %v", err)
	}
}

func TestServer_AnswersManyCallsAtATime(t *testing.T) {
	socket, _ := started(t, calls)
	c := connected(t, socket)
	var callers sync.WaitGroup
	for i := range 3 * maxStreams { // calls above the limit wait in the client
		callers.Go(func() {
			request := bytes.Repeat([]byte{byte(i)}, 100<<10)
			if reply, err := invoke(t.Context(), c, "Echo", request); err != nil || !bytes.Equal(reply, request) {
				t.Errorf("call %d: %d bytes, %v", i, len(reply), err)
			}
		})
	}
	callers.Wait()
}

func TestServer_EndsACallThatNobodyWaitsFor(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	socket, _ := started(t, func(ctx context.Context, method string, _ []byte) ([]byte, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	c := connected(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := invoke(ctx, c, "Wait", nil); status.Code(err) != codes.Canceled {
		t.Errorf("got %v, want %v", err, codes.Canceled)
	}
	<-ended
}

func TestServer_ReadsHeadersOfMoreThanAFrame(t *testing.T) {
	socket, _ := started(t, calls)
	c := connected(t, socket)
	for range 3 { // the second time from HPACK's table
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-long", strings.Repeat("~", 2*frame), "x-short", "y")
		if reply, err := invoke(ctx, c, "Echo", []byte("z")); err != nil || string(reply) != "z" {
			t.Errorf("got %q, %v", reply, err)
		}
	}
}

func TestServer_DoesWhatHostsOfGoPluginAskFor(t *testing.T) {
	socket, over := started(t, calls)
	c := connected(t, socket)
	health, err := grpc_health_v1.NewHealthClient(c).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	if err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", health, err)
	}
	for _, method := range []string{"/plugin.GRPCStdio/StreamStdio", "/plugin.GRPCBroker/StartStream"} {
		s, err := c.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if _, err := s.Header(); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := c.Invoke(t.Context(), "/plugin.GRPCController/Shutdown", new(emptypb.Empty), new(emptypb.Empty)); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-over; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestServer_TakesNoMoreConnectionsThanItShould(t *testing.T) {
	socket, _ := started(t, calls)
	var list []net.Conn
	for range maxConns + 1 {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		list = append(list, c)
	}
	if _, err := io.ReadAll(list[maxConns]); err != nil {
		t.Errorf("the one too many: %v, want its end", err)
	}
}

func TestServer_EndsAConnectionThatIsNotHTTP2(t *testing.T) {
	for name, hello := range map[string]string{
		"another protocol": "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a long frame":     clientPreface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
		"no headers":       clientPreface + "\x00\x00\x00\x09\x04\x00\x00\x00\x01",
		"even stream":      clientPreface + "\x00\x00\x01\x01\x05\x00\x00\x00\x02\x84",
		"bad table":        clientPreface + "\x00\x00\x05\x01\x05\x00\x00\x00\x01\xff\xff\xff\xff\x0f",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket, _ := started(t, calls)
			c, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, hello); err != nil {
				t.Error(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection goes on")
			}
		})
	}
}
