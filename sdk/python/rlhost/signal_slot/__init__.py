"""Event loops, signals and slots between the objects of a Python program, in one process and in several, by the names of signal-slot.

    from rlhost.signal_slot import EventLoop, EventLoopObject, EventLoopProcess, signal

    class Source(EventLoopObject):
        @signal
        def found(self): ...

    class Sink(EventLoopObject):
        def on_found(self, what):
            print(what)
            self.event_loop.stop()

    loop, process = EventLoop("main"), EventLoopProcess("worker")
    source, sink = Source(process.event_loop, "source"), Sink(loop, "sink")
    source.found.connect(sink.on_found)
    process.event_loop.start.connect(process.event_loop.stop)
    source.found.emit({"a": 1})
    process.start()
    loop.exec()
    process.join()

A signal is delivered to every slot that is connected to it, each on the loop of its object. Within a process its arguments go as they are;
to another process they go pickled, through shared memory. A loop runs its slots one at a time, in the order in which one object emitted.
These loops need no host; components of a run are rlhost.Component.
"""

from .inbox import configure_logger, get_mp_queue, log
from .loop import EventLoop, EventLoopStatus, TightLoop, Timer
from .objects import Emitter, EventLoopObject, signal
from .process import EventLoopProcess, ProcessDied, process_name, process_pid

__all__ = [
    "Emitter", "EventLoop", "EventLoopObject", "EventLoopProcess", "EventLoopStatus", "ProcessDied", "TightLoop", "Timer", "configure_logger",
    "get_mp_queue", "log", "process_name", "process_pid", "signal",
]
