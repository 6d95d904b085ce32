/* Machine and device, so that figures can be judged later. */
import { command, element } from './dom.js';

function card(title, rows) {
    const entries = Object.entries(rows);
    return entries.length ? element('div', { class: 'card' }, element('h3', {}, title),
                                    element('dl', {}, entries.map(([key, value]) =>
                                        [element('dt', {}, key), element('dd', {}, value)]))) : null;
}

export function facts(data) {
    const several = data.runs.length > 1;
    const of = run => (several ? `, ${run.label}` : '');
    const node = element('div', {},
        data.reproduction && [element('p', {}, 'Figures of models do not depend on the machine: the same ' +
            'command gives the same results anywhere.'), command(data.reproduction.command)],
        element('div', { class: 'cards' }, data.runs.map(run =>
            [card(`Machine${of(run)}`, run.machine), card(`Device${of(run)}`, run.device)])));
    return { title: 'Machine and device', id: 'facts', node };
}
