;; A head of 64 bytes is of before version 1 was a candidate, whatever the marker says.
;; include guest
(data (i32.const 0x400) "\40")
