;; A scale that is NaN.
;; include guest
(data (i32.const 0x53c) "\00\00\c0\7f")
