;; The greatest reward is a number.
;; include guest
(data (i32.const 0x454) "\00\00\00\00\00\00\c0\7f")
