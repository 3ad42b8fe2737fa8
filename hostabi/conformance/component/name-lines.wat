;; A name of several lines.
;; include guest
;; include slot
(data (i32.const 0x661) "\0a")
