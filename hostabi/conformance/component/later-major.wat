;; Another major version than that of the marker.
;; include guest
;; include slot
(data (i32.const 0x404) "\02")
