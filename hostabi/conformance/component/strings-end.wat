;; The string table does not end with a NUL.
;; include guest
;; include slot
(data (i32.const 0x6ff) "x")
