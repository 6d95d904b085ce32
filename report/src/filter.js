/* SPDX-License-Identifier: BSD-2-Clause */
/* The box that leaves only what contains all its words: rows of values, experiments, figures, findings. */
import { element } from './dom.js';

const ITEMS = '.values tbody tr, article, .finding';
const TEXTS = 'h3, p, figcaption, .legend label, code';

/* What is in an article besides its tables. */
const textOf = item => (item.matches('tr') ? item.textContent
    : [item.id, ...[...item.querySelectorAll(TEXTS)].map(part => part.textContent)].join(' ')).toLowerCase();

function apply(main, nav, words) {
    const items = [...main.querySelectorAll(ITEMS)];
    for (const item of items)
        item.hidden = !words.every(word => textOf(item).includes(word));
    for (const link of nav.querySelectorAll('a'))
        link.hidden = !!document.getElementById(link.hash.slice(1))?.hidden;
    return { shown: items.filter(item => !item.hidden).length, all: items.length };
}

export function filterBox(main, nav) {
    const output = element('output', { 'aria-live': 'polite', class: 'muted small' });
    const input = element('input', {
        type: 'search', placeholder: 'latency write', autocomplete: 'off',
        oninput: () => {
            const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
            const { shown, all } = apply(main, nav, words);
            output.textContent = words.length ? `${shown} of ${all} shown` : '';
        },
    });
    return element('search', { class: 'filter' }, element('label', {}, 'Filter ', input), ' ', output);
}
