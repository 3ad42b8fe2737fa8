;; Pictures a second are a number.
;; include guest
(data (i32.const 0x450) "\00\00\c0\7f")
