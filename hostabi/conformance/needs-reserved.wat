;; A need whose bit is reserved: no host has it, and none says that it is the author's mistake.
;; include guest
(data (i32.const 0x410) "\10")
