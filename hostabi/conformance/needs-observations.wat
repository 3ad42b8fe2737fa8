;; A need that version 1 has: a host without observations refuses it by that name.
;; include guest
(data (i32.const 0x410) "\02")
