;; The name of a column has several lines.
;; include guest
;; include slot
(data (i32.const 0x650) "\0a")
