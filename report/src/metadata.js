/* SPDX-License-Identifier: BSD-2-Clause */
/* Metadata of machine and device. */
import { command, element } from './dom.js';

function card(title, rows) {
    const entries = Object.entries(rows);
    return entries.length ? element('div', { class: 'card' }, element('h3', {}, title),
                                    element('dl', {}, entries.map(([key, value]) =>
                                        [element('dt', {}, key), element('dd', {}, value)]))) : null;
}

export function metadata(data) {
    const several = data.runs.length > 1;
    const of = run => (several ? `, ${run.label}` : '');
    const node = element('div', {},
        data.reproduction && [element('p', {}, 'Results of models do not depend on the machine: the same ' +
            'command gives the same values anywhere.'), command(data.reproduction.command)],
        element('div', { class: 'cards' }, data.runs.map(run =>
            [card(`Machine${of(run)}`, run.machine), card(`Device${of(run)}`, run.device)])));
    return { title: 'Machine and device', id: 'metadata', node };
}
