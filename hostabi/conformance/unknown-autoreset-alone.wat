;; Of the modes of autoreset that are offered version 1 has none.
;; include guest
(data (i32.const 0x43c) "\08")
