/* SPDX-License-Identifier: BSD-2-Clause */
/* Links that save a table as comma-separated values; the data is in the link, so no server is needed. */
import { anchor, element } from './dom.js';

const field = value => {
    const text = value == null ? '' : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function csvText(head, rows) {
    return [head, ...rows].map(row => `${row.map(field).join(',')}\r\n`).join('');
}

export function csvLink(name, head, rows) {
    return element('a', { class: 'csv', download: `${anchor(name)}.csv`,
                          href: `data:text/csv;charset=utf-8,${encodeURIComponent(csvText(head, rows))}`,
                          'aria-label': `${name}: save as CSV` }, 'CSV');
}
