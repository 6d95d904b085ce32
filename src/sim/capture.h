/* The packets on the links as a capture file that tshark and Wireshark read: ERF records of type
 * 21, InfiniBand, in a pcap file of link type 197. */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include <stdbool.h>

struct flight;
struct port;

extern bool capture_on;

/* The first process begins the file. Returns 0 or an errno value with the reason logged. */
int capture_open(const char *path, bool first);
void capture_flush(void);

/* The packet is put on the link of 'from', for 'to'. */
void capture_packet(const struct port *from, const struct port *to, const struct flight *flight);

#endif
