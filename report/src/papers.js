/* SPDX-License-Identifier: BSD-2-Clause */
/* Each paper: its question, every value, and its figures with our curves and the points it quotes. */
import { chart } from './chart.js';
import { csvLink } from './csv.js';
import { command, element, table } from './dom.js';
import { percent, value } from './format.js';
import { byRole, verdict } from './overview.js';

function drawn(paper, one) {
    const unit = one.curves[0]?.unit ?? '';
    return element('article', { class: 'experiment', id: `figure-${paper.name}-${one.id}` },
                   element('h3', {}, one.title),
                   element('p', { class: 'muted small' }, `${paper.short}, ${one.source}`),
                   element('p', {}, one.text),
                   one.curves.length ? chart({
                       title: `${one.source}: ${one.quantity}`,
                       quantity: one.quantity,
                       unit,
                       axis: one.curves[0].axis,
                       axisUnit: one.curves[0].axis_unit,
                       logX: one.log.includes('x'),
                       logY: one.log.includes('y'),
                       series: one.curves.map(curve => ({
                           name: curve.name, run: curve.run,
                           points: curve.points.map(([x, y]) => ({ x, y })),
                       })),
                       quoted: one.quoted,
                   }) : element('p', {}, 'No curve: ', one.reason),
                   one.commands.map(command));
}

function columns(what_if) {
    const before = [
        { title: 'before', number: true, text: row => value(row.before?.ours) },
        { title: 'change', number: true,
          text: row => (row.before?.ours ? percent(100 * (row.ours / row.before.ours - 1)) : '–') },
    ];
    return [
        { title: 'value', text: row => element('span', { id: `row-${row.id}` }, row.id) },
        { title: 'what', text: row => [row.setup || row.experiment, row.metric].filter(Boolean).join(': ') },
        { title: 'adapter', text: row => row.platform },
        { title: 'paper', number: true, class: 'key', text: row => value(row.paper) },
        ...(what_if ? before : []),
        { title: 'ours', number: true, class: 'key', text: row => value(row.ours) },
        { title: 'unit', text: row => row.unit },
        { title: 'error', number: true, text: row => percent(row.error) },
        { title: 'unseen', number: true, text: row => percent(row.unseen) },
        { title: 'role', text: row => row.role },
        { title: 'verdict', class: 'key', text: row => verdict(row.verdict) },
        { title: 'matches if', text: row => row.criterion || '–' },
        { title: 'remark', text: row => row.observed || row.note },
    ];
}

function saved(paper, what_if) {
    const fields = ['id', 'platform', 'setup', 'metric', 'unit', 'paper', 'ours', 'error', 'points', 'unseen', 'role', 'verdict',
                    'criterion', 'observed', 'note'];
    return csvLink(`${paper.name} values`, [...fields, ...(what_if ? ['before'] : [])],
                   paper.rows.map(row => [...fields.map(name => row[name]), ...(what_if ? [row.before?.ours] : [])]));
}

function section(paper, what_if) {
    return {
        title: paper.short,
        id: `paper-${paper.name}`,
        node: element('div', {},
                      element('p', { class: 'muted' }, `${paper.authors}: ${paper.title}`),
                      element('p', {}, paper.about),
                      element('p', {}, `Match: ${byRole(paper.rows)}.`),
                      table(`Every value of ${paper.short}`, columns(what_if), paper.rows, 'values'),
                      element('p', { class: 'small' }, saved(paper, what_if)),
                      paper.figures.map(one => drawn(paper, one))),
        parts: paper.figures.map(one => ({ id: `figure-${paper.name}-${one.id}`, title: one.title })),
    };
}

export function papers(data) {
    return data.reproduction?.papers.map(paper => section(paper, data.reproduction.change));
}
