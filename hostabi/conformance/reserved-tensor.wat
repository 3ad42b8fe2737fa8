;; A reserved byte of a tensor is not 0.
;; include guest
(data (i32.const 0x4f0) "\01")
