;; A reserved byte of the head is not 0.
;; include guest
(data (i32.const 0x47c) "\01")
