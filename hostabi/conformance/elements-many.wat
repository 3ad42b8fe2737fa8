;; A tensor of more than 2^24 elements.
;; include guest
(data (i32.const 0x50c) "\01\00\00\01")
