// The page to label on. Everything that people wrote is put in as text; votes come as HTML that the program escaped.
(() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const tab = crypto.randomUUID();
  const done = [];
  let current = null;
  let answerOf = null; // returns what the input holds
  let keys = null; // what the digits do
  let sending = false;

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (key in element && key !== "list") element[key] = value;
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  };
  const draw = (name, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const say = (text, wrong = false) => {
    find("message").textContent = text;
    find("message").classList.toggle("error", wrong);
  };
  const ask = async (path, content) => {
    const sent = content === undefined ? {} : {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(content),
    };
    let reply;
    try {
      reply = await fetch(path, sent);
    } catch {
      throw new Error("The program does not answer. Start it again; every answer so far is in the file.");
    }
    const found = await reply.json().catch(() => ({ error: "The program does not know this page. Open its address." }));
    if (!reply.ok) throw new Error(found.error);
    return found;
  };
  const submit = (text = "Save answer") => make("button", { type: "submit", className: "main" }, text);

  // --- one input for each kind of label ---------------------------------------------------------------

  const buttons = (form, texts, values) => {
    texts.forEach((text, index) => form.append(make("button", {
      type: "button", onclick: () => send(values ? values[index] : index),
    }, ...(index < 9 ? [make("kbd", {}, String(index + 1)), " "] : []), text)));
    keys = (index) => index < texts.length && send(values ? values[index] : index);
  };
  const offset = (text, place) => Array.from(text.slice(0, place)).length; // in characters, as Python counts

  const table = (form, names, classes, changed) => {
    const rows = [];
    const body = make("tbody");
    const head = [...names, ...(classes ? ["class"] : []), ""];
    form.append(make("table", { className: "rows" }, make("thead", {}, make("tr", {},
      ...head.map((name) => make("th", {}, name)))), body));
    const add = (values) => {
      const inputs = names.map((name, index) => make("input", {
        type: "number", step: "any", value: values[index], oninput: changed, ariaLabel: `${name} of ${rows.length + 1}`,
      }));
      const kind = classes && make("select", { ariaLabel: `class of ${rows.length + 1}`, onchange: changed },
        ...classes.map((name) => make("option", {}, name)));
      const line = make("tr", {}, ...inputs.map((input) => make("td", {}, input)), ...(kind ? [make("td", {}, kind)] : []));
      const row = { inputs, kind, line };
      line.append(make("td", {}, make("button", { type: "button", onclick: () => {
        rows.splice(rows.indexOf(row), 1);
        line.remove();
        changed();
      } }, "Remove")));
      rows.push(row);
      body.append(line);
      changed();
      return row;
    };
    const values = () => rows.map((row) => [
      ...row.inputs.map((input) => Number(input.value)), ...(row.kind ? [row.kind.value] : []),
    ]);
    return { add, rows, values };
  };

  const inputs = {
    choice: (form, input) => buttons(form, input.options),
    pair: (form, input) => buttons(form, [...input.options, "tie"], [[0, 1], [1, 0], "tie"]),
    pick: (form, input, item) => {
      item.votes.forEach((vote, index) => {
        const shown = make("span");
        shown.innerHTML = vote.html;
        form.append(make("p", {}, make("button", { type: "button", onclick: () => send({ vote: index }, true) },
          make("kbd", {}, String(index + 1)), " ", shown)));
      });
      keys = (index) => index < item.votes.length && send({ vote: index }, true);
    },
    score: (form, input) => {
      const common = { min: input.low, max: input.high, step: input.step };
      const middle = (input.low + input.high) / 2;
      const slider = make("input", { type: "range", ...common, value: middle, ariaLabel: "Score" });
      const number = make("input", { type: "number", step: "any", ariaLabel: "Score as a number", required: true });
      if (input.bounded) Object.assign(number, { min: input.low, max: input.high });
      slider.addEventListener("input", () => { number.value = slider.value; });
      number.addEventListener("input", () => { slider.value = number.value; });
      form.append(slider, make("p", {}, number, " ", submit()));
      answerOf = () => Number(number.value);
      number.focus();
    },
    ranking: (form, input) => {
      const list = make("ol", { className: "order" });
      let dragged = null;
      input.options.forEach((name, index) => {
        const line = make("li", { draggable: true });
        line.dataset.index = index;
        const move = (step) => {
          const other = step < 0 ? line.previousElementSibling : line.nextElementSibling;
          if (other) other[step < 0 ? "before" : "after"](line);
        };
        const button = (text, step) => make("button", { type: "button", ariaLabel: `Move ${name} ${step < 0 ? "up" : "down"}`,
          onclick: (event) => { move(step); event.target.focus(); } }, text);
        line.append(make("span", {}, name), button("↑", -1), button("↓", 1));
        line.addEventListener("dragstart", () => { dragged = line; });
        line.addEventListener("dragover", (event) => {
          event.preventDefault();
          const half = line.getBoundingClientRect();
          if (dragged && dragged !== line) line[event.clientY < half.top + half.height / 2 ? "before" : "after"](dragged);
        });
        list.append(line);
      });
      form.append(make("p", {}, "Best first: drag, or use the arrows."), list, submit());
      answerOf = () => [...list.children].map((line) => Number(line.dataset.index));
    },
    tags: (form, input) => {
      const boxes = input.options.map((name, index) => {
        const box = make("input", { type: "checkbox" });
        form.append(make("p", {}, make("label", {}, box, " ", ...(index < 9 ? [make("kbd", {}, String(index + 1)), " "] : []), name)));
        return box;
      });
      form.append(submit());
      keys = (index) => { if (boxes[index]) boxes[index].checked = !boxes[index].checked; };
      answerOf = () => boxes.flatMap((box, index) => (box.checked ? [index] : []));
    },
    text: (form, input) => {
      const area = make("textarea", { ariaLabel: "Text" });
      const start = (text) => { area.value = text; area.focus(); };
      const proposals = [...new Set(input.proposals)];
      form.append(area, make("p", {}, submit()), make("p", {}, "Start from a proposal:"), ...proposals.map((text, index) =>
        make("p", {}, make("button", { type: "button", onclick: () => start(text) }, make("kbd", {}, String(index + 1)), " ", text))));
      keys = (index) => index < proposals.length && start(proposals[index]);
      answerOf = () => area.value;
    },
    tree: (form, input, item) => {
      const words = Object.values(item.texts).map((text) => text.trim().split(/\s+/)).find((one) => one.length === input.tokens);
      const names = Array.from({ length: input.tokens }, (_, index) => (words ? words[index] : `token ${index + 1}`));
      const line = make("div", { className: "tokens" });
      let chosen = null;
      const selects = names.map((name, index) => {
        const select = make("select", { ariaLabel: `Head of ${index + 1} ${name}` }, make("option", { value: "" }, "head?"),
          make("option", { value: "0" }, "root"), ...names.map((other, place) => make("option", { value: place + 1, disabled: place === index }, `${place + 1} ${other}`)));
        const word = make("button", { type: "button", onclick: () => {
          if (chosen === null) chosen = index;
          else {
            selects[chosen].value = chosen === index ? "0" : String(index + 1);
            chosen = null;
          }
          line.querySelectorAll("button").forEach((one, place) => one.classList.toggle("chosen", place === chosen));
        } }, `${index + 1} ${name}`);
        line.append(make("label", {}, word, select));
        return select;
      });
      form.append(make("p", {}, "Click a word, then its head; click the same word twice for the root."), line, submit());
      answerOf = () => {
        if (selects.some((select) => select.value === "")) throw new Error("Some words have no head yet. Choose one for each.");
        return selects.map((select) => Number(select.value));
      };
    },
    spans: (form, input, item) => {
      const text = Object.values(item.texts)[0] ?? "";
      const place = find("about").querySelector(".text");
      const editor = table(form, input.corners, input.classes, () => {
        if (!place) return;
        const ends = editor ? editor.values().filter(([start, end]) => end > start).sort((a, b) => a[0] - b[0]) : [];
        const signs = Array.from(text);
        place.replaceChildren();
        let last = 0;
        for (const [start, end] of ends) {
          place.append(signs.slice(last, start).join(""), make("mark", {}, signs.slice(Math.max(start, last), end).join("")));
          last = Math.max(end, last);
        }
        place.append(signs.slice(last).join(""));
      });
      const within = (node, position) => {
        const range = document.createRange();
        range.setStart(place, 0);
        range.setEnd(node, position);
        return offset(text, range.toString().length);
      };
      const markSelection = () => {
        const selected = window.getSelection();
        if (!place || !selected.rangeCount || selected.isCollapsed || !place.contains(selected.anchorNode)) {
          say("Select a part of the text first, or add a span and type where it starts and ends.", true);
          return;
        }
        const range = selected.getRangeAt(0);
        editor.add([within(range.startContainer, range.startOffset), within(range.endContainer, range.endOffset)]);
        selected.removeAllRanges();
      };
      form.append(make("p", {}, make("button", { type: "button", onclick: markSelection }, make("kbd", {}, "m"), " Mark selection"),
        make("button", { type: "button", onclick: () => editor.add([0, 1]).inputs[0].focus() }, "Add span"), submit()));
      keys = (index, key) => key === "m" && markSelection();
      answerOf = editor.values;
    },
    boxes: (form, input, item) => {
      const number = Object.values(item.images)[0];
      const picture = number === undefined ? null : make("img", { src: `image/${number}`, alt: "The item" });
      const svg = draw("svg", { "aria-label": "Drag to draw a box, drag a box to move it" });
      if (!picture) svg.setAttribute("class", "blank");
      const resize = () => {
        const [width, height] = picture ? [picture.naturalWidth, picture.naturalHeight] : [input.reach * 1.1, input.reach * 1.1];
        svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
        if (!picture) { svg.setAttribute("width", "480"); svg.setAttribute("height", "480"); }
      };
      if (picture) picture.addEventListener("load", resize);
      resize();
      const editor = table(form, input.corners, input.classes, () => editor && paint());
      const place = make("div", { className: "drawing" }, ...(picture ? [picture] : []), svg);
      form.prepend(place);
      const at = (event) => {
        const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
        return [Math.round(point.x * 10) / 10, Math.round(point.y * 10) / 10];
      };
      let held = null;
      const paint = () => {
        svg.replaceChildren(...editor.rows.map((row) => {
          const [x1, y1, x2, y2] = row.inputs.map((one) => Number(one.value));
          const box = draw("rect", { x: Math.min(x1, x2), y: Math.min(y1, y2), width: Math.abs(x2 - x1), height: Math.abs(y2 - y1) });
          box.addEventListener("pointerdown", (event) => {
            event.stopPropagation();
            held = { row, from: at(event), start: [x1, y1, x2, y2] };
          });
          return box;
        }));
      };
      svg.addEventListener("pointerdown", (event) => {
        const from = at(event);
        held = { row: editor.add([...from, ...from]), from, start: null };
        event.preventDefault();
      });
      const moved = (event) => {
        if (!held) return;
        const to = at(event);
        const step = [to[0] - held.from[0], to[1] - held.from[1]];
        const corners = held.start
          ? held.start.map((value, index) => value + step[index % 2])
          : [Math.min(held.from[0], to[0]), Math.min(held.from[1], to[1]), Math.max(held.from[0], to[0]), Math.max(held.from[1], to[1])];
        held.row.inputs.forEach((one, index) => { one.value = Math.round(corners[index] * 10) / 10; });
        paint();
      };
      window.onpointermove = moved;
      window.onpointerup = () => { held = null; };
      form.append(make("p", {}, make("button", { type: "button", onclick: () => editor.add([0, 0, 10, 10]).inputs[0].focus() }, "Add box"), submit()));
      answerOf = editor.values;
    },
  };

  // --- items and answers ------------------------------------------------------------------------------

  const show = (item) => {
    current = item;
    answerOf = keys = null;
    const form = find("answer");
    const about = find("about");
    form.replaceChildren();
    about.replaceChildren();
    find("comment").value = "";
    if (!item) {
      find("name").textContent = "Every item has been answered";
      say("Press Finish to write labels, report and audit.");
      return;
    }
    find("name").textContent = item.item;
    const list = make("dl");
    for (const [name, text] of Object.entries(item.texts)) {
      list.append(make("dt", {}, name), make("dd", {}, make("div", { className: "text" }, text)));
    }
    if (item.input.kind !== "boxes") {
      for (const [name, number] of Object.entries(item.images)) {
        list.append(make("dt", {}, name), make("dd", {}, make("img", { src: `image/${number}`, alt: name })));
      }
    }
    about.append(list);
    if (item.votes && item.input.kind !== "pick") about.append(saidBy(item.votes, "What the sources say"));
    inputs[item.input.kind](form, item.input, item);
    if (!form.contains(document.activeElement)) find("name").focus();
  };
  const saidBy = (votes, title) => {
    const rows = votes.map((vote) => {
      const cell = make("td");
      cell.innerHTML = vote.html;
      return make("tr", {}, make("td", {}, vote.source), cell);
    });
    return make("div", { className: "scroll" }, make("h3", {}, title), make("table", {}, make("tbody", {}, ...rows)));
  };
  const next = async () => {
    const found = await ask("next", { tab });
    show(found.item);
    update(found.state);
  };
  const tell = async (status, answer) => {
    if (!current || sending) return;
    sending = true;
    try {
      const item = current.item;
      const found = await ask("answer", { item, status, answer, comment: find("comment").value });
      done.push(item);
      find("said").hidden = false;
      find("said").replaceChildren(saidBy(found.votes, `What the sources said about ${item}`));
      say(status === "answered" ? `Saved the answer to ${item}.` : `${item}: ${status}.`);
      await next();
    } catch (error) {
      say(error.message, true);
    } finally {
      sending = false;
    }
  };
  const send = (answer, asItIs = false) => tell("answered", asItIs ? answer : { label: answer });
  const undo = async () => {
    const item = done.pop();
    if (!item) return say("There is nothing to undo on this page.", true);
    try {
      await ask("answer", { item, status: "undone" });
      const found = await ask("item", { item });
      show(found.item);
      update(found.state);
      say(`Took back the answer to ${item}.`);
    } catch (error) {
      say(error.message, true);
    }
  };
  const finish = async () => {
    say("Writing …");
    try {
      const found = await ask("finish", {});
      say(`Wrote ${found.files.join(", ")}.`);
    } catch (error) {
      say(error.message, true);
    }
  };

  // --- what the answers say -----------------------------------------------------------------------------

  const percent = (value) => `${(100 * value).toFixed(1)}%`;
  const bar = (one, low, high, figure) => {
    const place = (value) => 4 + 192 * Math.min(Math.max((value - low) / (high - low || 1), 0), 1);
    return draw("svg", { class: "interval", viewBox: "0 0 200 18", preserveAspectRatio: "xMinYMid", role: "img", "aria-label": `${figure(one.low)} to ${figure(one.high)}` },
      draw("line", { class: "axis", x1: 4, x2: 196, y1: 9, y2: 9 }),
      draw("line", { class: "range", x1: place(one.low ?? low), x2: place(one.high ?? high), y1: 9, y2: 9 }),
      draw("circle", { class: "vote", cx: place(one.value), cy: 9, r: 5 }));
  };
  let timer = 0;
  const update = (state) => {
    find("progress").textContent = `${state.answered} of ${state.asked} answered${state.cannot_tell ? `, ${state.cannot_tell} marked as unclear` : ""}.`;
    const audit = state.audit;
    const share = audit && audit.measure === "accuracy";
    const figure = (value) => (value === null ? "?" : share ? percent(value) : value.toPrecision(3));
    find("estimate").replaceChildren(...(audit ? [
      make("p", { className: "estimate" }, make("b", {}, figure(audit.value)), ` ${audit.measure} of all labels`),
      make("p", { id: "interval" }, `95% interval: ${figure(audit.low)} to ${figure(audit.high)}`),
      bar(audit, 0, share ? 1 : (audit.high ?? audit.value) * 1.1, figure),
    ] : [make("p", {}, "The first answers to items drawn at random say how good the labels are.")]));
    find("needed").textContent = state.needed === null ? "" : state.needed
      ? `About ${state.needed} more labels for ± ${share ? percent(state.within) : state.within}.`
      : `Known to ± ${share ? percent(state.within) : state.within} or better.`;
    find("changed").textContent = state.trouble || state.changed + (state.busy ? " Learning …" : "");
    const most = Math.max(...state.sources.map((one) => one.high ?? one.value), 0);
    find("sources").replaceChildren(...(state.sources.length ? [make("h3", {}, "Sources"), make("table", {}, make("tbody", {},
      ...state.sources.map((one) => make("tr", {}, make("td", {}, one.name), make("td", {}, figure(one.value)), make("td", {}, bar(one, 0, share ? 1 : most, figure))))))] : []));
    clearTimeout(timer);
    timer = setTimeout(() => ask("state").then(update, () => {}), state.busy ? 400 : 5000);
  };

  find("answer").addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      if (answerOf) send(answerOf());
    } catch (error) {
      say(error.message, true);
    }
  });
  find("undo").addEventListener("click", undo);
  find("skip").addEventListener("click", () => tell("skipped"));
  find("cannot").addEventListener("click", () => tell("cannot tell"));
  find("finish").addEventListener("click", finish);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("textarea, select, input:not([type=checkbox]):not([type=range])");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const digit = "123456789".indexOf(event.key);
    if (digit >= 0 && event.key.length === 1 && keys) keys(digit, event.key);
    else if (event.key === "u") undo();
    else if (event.key === "s") tell("skipped");
    else if (event.key === "c") tell("cannot tell");
    else if (event.key === "m" && keys) keys(-1, "m");
    else return;
    event.preventDefault();
  });
  next().catch((error) => say(error.message, true));
})();
