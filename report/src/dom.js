/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates an element: element('p', { class: 'note' }, 'text', child). */
export function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith('on'))
            node.addEventListener(key.slice(2), value);
        else if (value === true)
            node.setAttribute(key, '');
        else if (value !== false && value != null)
            node.setAttribute(key, value);
    }
    node.append(...children.flat(Infinity).filter(child => child != null && child !== false));
    return node;
}

/* A table that scrolls if the page is too narrow, or reflows if its class says so. Columns: { title,
 * text(row), number, class }. The first column has the row headers. */
export function table(caption, columns, rows, kind = '') {
    const head = columns.map(column => element('th', { scope: 'col', role: 'columnheader',
                                                       class: column.number && 'number' }, column.title));
    const body = rows.map(row => element('tr', { role: 'row' }, columns.map((column, index) =>
        element(index ? 'td' : 'th', {
            scope: index ? null : 'row',
            role: index ? 'cell' : 'rowheader',
            'data-title': column.title,
            class: [column.number && 'number', column.class].filter(Boolean).join(' ') || null,
        }, column.text(row)))));
    return element('div', { class: `scroll ${kind}`.trim(), tabindex: 0, role: 'region', 'aria-label': caption },
                   element('table', { role: 'table' }, element('caption', {}, caption),
                           element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, head)),
                           element('tbody', { role: 'rowgroup' }, body)));
}

export function command(text) {
    return element('pre', { class: 'command', tabindex: 0, 'aria-label': 'Command' },
                   element('code', {}, text.split(' ').flatMap((word, index) =>
                       [index ? ' ' : '', element('span', {}, word)])));
}

/* A name for an anchor. */
export function anchor(...words) {
    return words.join('-').toLowerCase().replace(/[^a-z0-9]+/g, '-');
}
