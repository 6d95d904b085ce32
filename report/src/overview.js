/* SPDX-License-Identifier: BSD-2-Clause */
/* The outcome at a glance. */
import { element } from './dom.js';
import { count, percent } from './format.js';

export const VERDICTS = ['matches', 'misses', 'not run'];

export function verdict(text) {
    return element('span', { class: `verdict ${text.replace(' ', '-')}` }, text);
}

/* Inputs and repeated values prove nothing: they are not counted. */
const counted = rows => rows.filter(row => row.role !== 'input' && row.role !== 'repeated');

function tally(rows) {
    return Object.fromEntries(VERDICTS.map(name => [name, rows.filter(row => row.verdict === name).length]));
}

/* How many values or shapes of a role match. */
export function byRole(rows) {
    return [['predicted', 'predicted'], ['fitted', 'fitted'], ['shape', 'shapes']]
        .map(([role, word]) => [rows.filter(row => row.role === role), word])
        .filter(([some]) => some.length)
        .map(([some, word]) => `${some.filter(row => row.verdict === 'matches').length} of ${some.length} ${word}`)
        .join(', ');
}

function bar(counts, all) {
    return element('div', { class: 'bar', 'aria-hidden': 'true' }, VERDICTS.slice(0, 2).map(name =>
        element('span', { class: name, style: `width:${100 * counts[name] / all}%` })));
}

function paperCard(paper) {
    const rows = counted(paper.rows);
    const counts = tally(rows);
    const rest = [counts.misses && count(counts.misses, 'miss', 'misses'),
                  counts['not run'] && `${counts['not run']} not run`].filter(Boolean).join(', ');
    return element('div', { class: 'card' },
                   element('h3', {}, element('a', { href: `#paper-${paper.name}` }, paper.short)),
                   element('div', { class: 'big' }, rows.length ? `${counts.matches} of ${rows.length}` : '–'),
                   bar(counts, rows.length || 1),
                   element('p', { class: 'muted small' },
                           [byRole(rows) && `match: ${byRole(rows)}`, rest].filter(Boolean).join('; ')));
}

function misses(rows) {
    const missing = rows.filter(row => row.verdict === 'misses');
    if (!missing.length)
        return null;
    return [element('h3', {}, 'Values that miss'),
            element('ul', {}, missing.map(row => element('li', {},
                element('a', { href: `#row-${row.id}` }, row.id), `: ${row.setup || row.experiment}, `,
                row.error == null ? row.observed : percent(row.error))))];
}

function headline({ summary, tolerance }) {
    const { predicted, fitted, shape, unseen } = summary;
    return element('p', {}, element('strong', {}, `Of ${summary.independent} independent values ` +
        `${predicted.within + unseen.within} are predicted within ${tolerance}%, ` +
        `${predicted.within_twice + unseen.within_twice} within ${2 * tolerance}%; ` +
        `${unseen.all} were left out of their fit, ${unseen.estimated} of them by estimate, ${predicted.all} never fitted; ` +
        `${fitted.within} of ${fitted.all} fitted values match; ${shape.within} of ${shape.all} shapes match.`),
        ` Not counted: ${count(summary.input.all, 'input')}, ${count(summary.repeated.all, 'repeated value')}. ` +
        `Not run: ${summary.not_run}. Fitted, and left out of no recorded fit: ${fitted.all - unseen.all}.`);
}

function reproduced(reproduction) {
    const rows = reproduction.papers.flatMap(paper => paper.rows);
    return [
        element('p', {}, `${count(reproduction.papers.length, 'paper')} measured InfiniBand adapters or their ` +
            'ancestors. Here the same experiments run on models of those adapters, packet by packet in virtual ' +
            `time, and every value that a paper quotes is compared with ours. A value matches if it is within ${reproduction.tolerance}% of ` +
            'the paper\'s, a shape if the curve has it; each row says what that means. A value is fitted if the ' +
            'adapter file says that a parameter was fitted to its table or figure, predicted if none was, an input if it ' +
            'only echoes a parameter. A fitted value counts as predicted, too, where a fit to all others was recorded: "unseen" is ' +
            'how far off it is then.'),
        headline(reproduction),
        reproduction.change &&
            element('p', {}, 'This is a what-if: ', element('strong', {}, reproduction.change),
                    '. "before" is the papers\' adapter. A value that misses here shows the effect of the change, ' +
                    'not an error of the model.'),
        element('div', { class: 'cards' }, reproduction.papers.map(paperCard)),
        misses(rows),
    ];
}

function runCard(run) {
    const done = run.experiments.filter(one => !one.skipped && !one.failed).length;
    const points = run.experiments.flatMap(one => one.series).reduce((sum, one) => sum + one.points.length, 0);
    const others = [['skipped', one => one.skipped], ['failed', one => one.failed]]
        .map(([word, test]) => [run.experiments.filter(test).length, word])
        .filter(([number]) => number).map(([number, word]) => `${number} ${word}`);
    return element('div', { class: 'card' }, element('h3', {}, run.label),
                   element('div', { class: 'big' }, count(done, 'experiment')),
                   element('p', { class: 'muted small' },
                           [`${points} points`, ...others, run.interrupted && 'ended early']
                               .filter(Boolean).join(', ')),
                   element('p', { class: 'small' }, run.device.adapter || run.device.device || ''));
}

export function overview(data) {
    const node = element('div', {}, data.reproduction ? reproduced(data.reproduction)
        : element('div', { class: 'cards' }, data.runs.map(runCard)));
    return { title: 'Overview', id: 'overview', node };
}
