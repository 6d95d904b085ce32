/* SPDX-License-Identifier: BSD-2-Clause */
/* Each experiment: its question, method, charts, tables and command. */
import { anchor, command, element } from './dom.js';
import { chart } from './chart.js';

const WIDE = 50;  // an axis is logarithmic if its largest value is at least this many times its smallest
const TALL = 100;

const isWide = (values, ratio) => Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) >= ratio;

/* Curves of one quantity against one axis share a chart. */
function panels(parts, several) {
    const found = new Map();
    for (const { run, experiment } of parts) {
        for (const series of experiment.series) {
            const key = [series.quantity, series.unit, series.axis, series.axis_unit].join('\n');
            if (!found.has(key))
                found.set(key, { ...series, series: [] });
            found.get(key).series.push({
                name: series.name,
                run: several ? run.label : null,
                points: series.points.map(({ x, ...statistics }) => ({
                    x, y: statistics.median, low: statistics.ci_low, high: statistics.ci_high, statistics,
                })),
            });
        }
    }
    return [...found.values()];
}

function panelChart(name, panel) {
    const points = panel.series.flatMap(series => series.points);
    return chart({
        title: `${name}: ${panel.quantity}`,
        quantity: panel.quantity,
        unit: panel.unit,
        axis: panel.axis,
        axisUnit: panel.axis_unit,
        logX: isWide(points.map(point => point.x), WIDE),
        logY: isWide(points.map(point => point.y), TALL),
        series: panel.series,
    });
}

function settings(experiment) {
    const rows = Object.entries({ ...experiment.notes, ...experiment.settings });
    return rows.length ? element('details', {}, element('summary', {}, 'Settings and notes'),
                                 element('dl', {}, rows.map(([key, value]) =>
                                     [element('dt', {}, key), element('dd', {}, value)]))) : null;
}

function outcome({ run, experiment }, several) {
    const of = several ? ` (${run.label})` : '';
    return [experiment.skipped && element('p', {}, `Skipped${of}: ${experiment.skipped}`),
            experiment.failed && element('p', {}, `Failed${of}: ${experiment.failed}`)];
}

function part(id, parts, methods, several) {
    const { experiment } = parts[0];
    const runs = [...new Set(parts.map(one => one.run))];
    return element('article', { class: 'experiment', id },
                   element('h3', {}, experiment.title),
                   element('p', { class: 'muted small' },
                           experiment.name + (experiment.source ? ` · after ${experiment.source}` : '')),
                   methods[experiment.name] && element('p', {}, methods[experiment.name]),
                   parts.map(one => outcome(one, several)),
                   element('div', { class: 'charts' },
                           panels(parts, several).map(panel => panelChart(experiment.name, panel))),
                   runs.map(run => command(run.command)),
                   settings(experiment));
}

export function experiments(data, methods) {
    if (!data.runs.length)
        return null;
    const several = data.runs.length > 1;
    const groups = new Map();
    for (const run of data.runs) {
        const seen = new Map();
        for (const experiment of run.experiments) {
            const number = (seen.get(experiment.name) ?? 0) + 1;
            const id = anchor('experiment', experiment.name, number > 1 ? number : '');
            seen.set(experiment.name, number);
            if (!groups.has(id))
                groups.set(id, []);
            groups.get(id).push({ run, experiment });
        }
    }
    const node = element('div', {}, [...groups].map(([id, parts]) => part(id, parts, methods, several)));
    return { title: 'Experiments', id: 'experiments', node,
             parts: [...groups].map(([id, parts]) => ({ id, title: parts[0].experiment.name })) };
}
