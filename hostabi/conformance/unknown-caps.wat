;; A capability that version 1 does not have: the host cannot make use of it rightly.
;; include guest
(data (i32.const 0x408) "\40")
